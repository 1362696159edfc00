"""What `sexton.store.reads` puts together: each subject's reads, over read transactions."""
