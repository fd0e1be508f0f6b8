"""Reading tables: files of any usual kind as record batches, in constant memory."""
