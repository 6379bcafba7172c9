"""The theory of globally gated deep linear networks of finite width."""
