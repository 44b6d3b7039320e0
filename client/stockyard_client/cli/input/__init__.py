"""What commands take: options, files, questions and the person's editor."""
