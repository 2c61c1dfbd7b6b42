"""The wire formats of model servers (chat, responses, messages), and the text dialect."""
