"""Reports: the findings of a suite as pages and documents. Text in, text out; reads no store."""
