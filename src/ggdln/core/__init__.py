"""What every room uses: errors, argument checks, random streams, kinds and their registry, fingerprints of code."""
