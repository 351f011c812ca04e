"""The tables of root-cause analysis: suites, cases, symptoms, causes."""
