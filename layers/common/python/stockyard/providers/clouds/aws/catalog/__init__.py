"""What a region of AWS offers: types with their labels, images and quotas."""
