"""The engine sends masked copies of images through an encoder, and measures how similar their codes stay."""
