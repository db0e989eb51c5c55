"""What hidden variables stand for: the variables that tell most about them, topics, names.

In come a model and its schema; out go `Topics` and `Description`s to read. `channels.py` lays a
model of any kind out as matrices along edges, `information.py` finds the variables of largest
mutual information with a node, `covering.py` and `topics.py` choose the hidden nodes to read,
`descriptions.py` writes about one node, `naming.py` gives them names. `mixin.py` has the
methods of the estimator; read `information.py` first.
"""

from latenttree.interpretation.channels import Channels, channels_of
from latenttree.interpretation.descriptions import Description
from latenttree.interpretation.information import Informative, most_informative
from latenttree.interpretation.topics import Topic, Topics, topics_of

__all__ = [
    "Channels",
    "Description",
    "Informative",
    "Topic",
    "Topics",
    "channels_of",
    "most_informative",
    "topics_of",
]
