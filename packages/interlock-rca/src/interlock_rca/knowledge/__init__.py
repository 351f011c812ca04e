"""RCA's tables: suites and their failures, and what is known about causes over all suites."""
