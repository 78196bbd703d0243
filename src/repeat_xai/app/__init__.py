"""The app: a photo explained in a browser, by an encoder that runs here. Gradio draws it, and is imported only then."""

from repeat_xai.app.server import serve

__all__ = ["serve"]
