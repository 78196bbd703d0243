"""Methods explain an image: they turn an encoder and an image into an explanation."""
