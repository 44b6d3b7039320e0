"""Offers of a region of AWS: types with their labels, images and quotas."""
