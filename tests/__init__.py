"""Each test carries a one-sentence claim; `property` holds laws, the rest reads by package."""
