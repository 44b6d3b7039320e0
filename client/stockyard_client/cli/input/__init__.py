"""Input of commands: options, files, questions and the person's editor."""
