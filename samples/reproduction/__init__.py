"""What holds the samples against their sources: sizes as published, figures, measures, studies, and the run that prints them."""
