"""Record and files of an installation, as one thing that another one can be made of.

A backup is a folder, or a tar of one:

    backup.json                   what it is, and the digest of the record; written last
    record-{digest}.jsonl.gz      every row, as one moment saw it
    files/{tenant}/{digest}       every file that those rows refer to

The rows are JSON and not a database's own format, so that what SQLite held can be restored into PostgreSQL, and the
other way round. They are read in one transaction, beside whoever writes. Files come after the rows: they never change,
and one that is deleted meanwhile is found missing. Then the rows are read again, and only what is new is copied, until
all that a record refers to is there. So nothing has to hold its breath, and no collection is put off.

A folder that holds a backup is brought up to date: files that it has are not copied again, and until the new
`backup.json` is in its place, it is the old backup. What broke off is gone on with in the same way.

Data that is not to be kept is in no backup, nor is what shows it: `ledger.retention` could not take it back from there.
"""
