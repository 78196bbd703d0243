"""The paper's tables and figures as data, and the presets by which they are made again."""
