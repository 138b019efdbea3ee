"""The check of every upload, before the API answers: a short-lived child process that can only read that one file."""
