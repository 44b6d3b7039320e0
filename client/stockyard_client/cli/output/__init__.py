"""Output for people: tables, descriptions, plans, progress, trees and watches."""
