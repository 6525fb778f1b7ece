"""What every room may use: numbers, text, files. It knows nothing of privacy or tables.

`arguments`: errors for arguments of another kind. `exact_numbers`: rationals from what people write
and back, long lists of exact decimals. `formatting`: numbers, counts, durations and lists as people
read them. `json_fields`: strict reading of JSON objects. `files`: whole-file writing, the user's
folder; `file_kinds`: what is no text. `names`: which names can be kept. `typed_numbers`: numbers as
people type them. `extras`: which optional packages are installed. `concurrency`: one-thread linear
algebra, ordered parallel map. `hangup`: the signal of a closed terminal. `numerics`: normal
quantiles, how CVXPY is asked. `template_text`: texts from templates. `ssh_signatures`: texts signed
and checked by ssh-keygen. `webapp_files`: where the app's own files lie. `server_settings`,
`limits`, `public_address`, `login_file`: how a shared server serves; `event_log`: its log.
`secret_files`: files that hold passwords.

Imports `errors` only.
"""
