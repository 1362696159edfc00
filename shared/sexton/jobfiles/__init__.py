"""Jobs as code: job files read strictly, compared with the cluster's jobs, and turned into one edit."""
