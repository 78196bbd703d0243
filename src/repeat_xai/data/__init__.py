"""Images and datasets: files of any kind are turned into pictures that an encoder can be shown."""
