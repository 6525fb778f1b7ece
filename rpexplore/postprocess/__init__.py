"""What is made of released tables afterwards, without any records: it spends no privacy."""
