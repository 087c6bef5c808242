"""What a user calls: run, record, derivatives, vmap."""
