"""ReportPortal: launches in, defect types out."""
