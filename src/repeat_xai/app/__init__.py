"""The app, which explains a photo in the browser with an encoder that runs on this machine.

Gradio draws the page. It is imported only when the app is served, because it is an optional dependency.
"""

from repeat_xai.app.server import serve

__all__ = ["serve"]
