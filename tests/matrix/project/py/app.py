import os

from dotenv import dotenv_values, find_dotenv, load_dotenv

found = find_dotenv()
load_dotenv(found)
print(os.path.basename(found), os.environ.get("GREETING", "hello"))
print(dict(dotenv_values(".env.development")), dict(dotenv_values(".env.example")))
