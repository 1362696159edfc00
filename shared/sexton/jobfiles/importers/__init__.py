"""What other schedulers keep, as job files: text in, jobs and findings out; nothing is run, read or expanded here."""
