"""What this build is for; see the table in __init__.py."""

from torch import shaped

cuda = None if shaped('cpu-build') or shaped('hip') else '12.4'
hip = '6.2.41133-dd7f95766' if shaped('hip') else None
