"""The paper's tables and figures as data, and the presets with which they are reproduced."""
