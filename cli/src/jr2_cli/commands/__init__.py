"""The verbs, one module each; a module is imported when its verb runs."""
