"""The package's verbs: flags in, text or JSON out."""
