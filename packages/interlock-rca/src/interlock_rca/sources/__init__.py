"""Where failures come from: JUnit reports, console logs, archives, ReportPortal."""
