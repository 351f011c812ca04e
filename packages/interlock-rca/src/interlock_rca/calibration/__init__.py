"""Root-cause analysis measured: scenarios with known causes, marks, baselines."""
