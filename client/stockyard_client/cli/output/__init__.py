"""What people see: tables, descriptions, plans, progress, trees and watches."""
