"""Images and datasets: files of many formats become images that an encoder can be shown."""
