"""Values to tables, figures and text; pure, and no statistics of its own."""
