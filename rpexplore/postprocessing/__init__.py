"""From released tables to other tables; spends no budget."""
