"""The functions of keras.ops, by module."""
