"""Builds of CodeBuild as processes of this machine."""
