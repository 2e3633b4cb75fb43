"""Caches as files of other formats: glTF and Alembic."""
