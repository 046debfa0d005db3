"""What became of a reset: samples of a cluster in, a verdict for each queue out. Pure.

``evidence`` holds what was seen, ``rules`` what it shows, ``verdict`` what follows, ``record`` the file in
which samples are kept. The client takes the samples.
"""
