"""The theory in scikit-learn's manner: estimators that learn, and gates that are transformers."""
