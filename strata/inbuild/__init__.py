"""Programs that run inside an image build, on the image's own Python, without strata."""
