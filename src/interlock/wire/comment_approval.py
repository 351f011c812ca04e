"""The words of approval, and whether a clause is made of them.

Knows the closed grammar of a clause that approves: who, the word, what, and what may stand beside
it. Refuses to know what the rest of the comment says. Every pattern looks at a bounded piece.
"""

import re
from typing import Final

LONGEST_CLAUSE: Final = 300
"""Characters of a clause that is looked at."""
_WORKS: Final = (
    r"(?:plan|pr|mr|pull request|merge request|design|docs?|document|proposal|prd|architecture"
    r"|epics?"
    r"|stor(?:y|ies)|changes?|request|spec|specs|specification|draft|version|patch|diff"
    r"|implementation"
    r"|code|merge|release|work|phase|task|update|updates|revision|rework|ux|requirements"
    r"|write-?up|rfc"
    r"|product requirements document|architecture design|ux design|document|checkpoint|commit"
    r"|branch)"
)
_THAT: Final = (
    r"(?:(?:the|this|that|your|these) (?:whole |entire |full |new |latest |current |updated "
    rf"|revised |complete |final |proposed )*{_WORKS}(?: and (?:the )?{_WORKS})?"
    r"|all of (?:it|this|them)|it all|this all|this one|this|it|that|these|them|everything|both"
    r"|all)"
    r"(?![\w-])"
)
_IT: Final = rf"(?:{_THAT}|{_WORKS}(?: and (?:the )?{_WORKS})?(?![\w-]))"
_FULLY: Final = (
    r"(?:fully|completely|totally|absolutely|happily|gladly|hereby|formally|officially|very"
    r"|really|so"
    r"|all|now|definitely|wholeheartedly|unconditionally|enthusiastically|also|extremely|just)"
)
_MAY: Final = (
    r"(?:(?:please|pls|you can|you may|you are free to|you're free to|feel free to"
    r"|let's|lets"
    r"|let us|we can|we may|ok to|okay to|free to|clear to|good to|happy for you to"
    r"|you can now"
    r"|go|i want you to|i'd say) )*"
)
_MAKE: Final = r"(?:merge|proceed|ship|implement|start|continue|build|deploy|begin|release|execute)"
APPROVING: Final = re.compile(
    r"(?:"
    rf"(?:(?:i|we|i'm|we're|i am|we are|i have|i've|we have|we've|i do) )?(?:{_FULLY} )*"
    rf"(?:approve|approved|approving)(?:(?: of)? {_THAT})?"
    rf"|{_IT} (?:(?:is|are|'s|has|have|been) )*(?:{_FULLY} )*approved"
    r"|(?:it's|that's|you're|you are|this's) (?:[a-z]+ly )?approved"
    rf"|(?:i )?consider {_IT} approved"
    rf"|(?:this |a |an |big |it's a |it's an |that's a |that's an |this is a "
    rf"|this is an )*lgtm+(?: {_IT})?"
    rf"|{_MAY}ship (?:it|this)(?: now| today)?|shipit"
    rf"|{_MAY}go ahead(?: (?:with|on) {_IT}| and {_MAKE}(?: {_IT})?|,? {_MAKE}(?: {_IT})?)?"
    rf"|{_MAY}proceed(?: (?:with (?:(?:the )?next (?:step|phase|stage|story|task)|phase \d+"
    rf"|implementation|the implementation|merging|{_IT})"
    rf"|as (?:planned|proposed"
    r"|written|described)|to (?:implementation|(?:the )?next (?:step|phase|stage|story|task)"
    r"|phase \d+)"
    r"|with confidence))?"
    rf"|(?:(?:{_IT}|all of this|this one) )?(?:{_FULLY} )*looks?(?: {_FULLY})* good"
    r")(?![\w'-])"
)
"""What approves, if the whole clause is made of it and of what may stand beside it."""
TAIL: Final = re.compile(
    r"(?:from (?:me|us|here|my (?:side|end|pov|perspective|part|point of view)|our (?:side|end))"
    r"|on behalf of (?:the )?(?:[a-z]+ )?team|for (?:this|it)|(?:to|for|by|with) (?:me|us)"
    r"|on (?:my|our) (?:side|end|part)"
    r"|for (?:merge|merging|release|implementation|production|the next (?:phase|step|stage)"
    r"|shipping)"
    r"|to (?:merge|ship|proceed|release|go|implement|be merged)|as (?:is|-is|written|proposed"
    r"|planned"
    r"|described|it is|it stands)|as-is|in full|in its entirety|right away|today|at once|any time"
    r"|whole|unconditionally|with (?:pleasure|thanks|joy)|for all of it)(?![\w'-])"
)
BESIDE: Final = re.compile(
    r"(?:(?:(?:i|we)(?:'ve| have)? )?(?:reviewed|read|tested|checked|verified|signed off)"
    rf"(?: {_IT})?(?! (?:by|in|on))|go for it|\+1|yes|yep|yeah|yup|yay|ok|okay"
    r"|sure|great|cool|perfect|nice|nicely done|excellent"
    r"|awesome"
    r"|wonderful|fantastic|brilliant|lovely|superb|good (?:stuff|work|job)|well done|done"
    r"|thanks?(?: you)?(?: (?:so much|very much|a lot|a ton|again|everyone|all|team|folks))?"
    r"|thx|ty|tysm"
    r"|cheers|many thanks|all good|all right|alright|absolutely|definitely|right|then|so|and"
    r"|indeed|hi"
    r"|hello|hey|team|folks|everyone|all|guys|work|job|i like it|love it|i love it"
    r"|this is (?:great|good)"
    r"|agreed|fine|super|sweet|amazing|great (?:work|job|stuff)|nice (?:work|job|one)|kudos"
    r"|congrats"
    r"|now|confirmed|happy with (?:it|this)|good|solid|clean|here|from the (?:team|product side)"
    r"|@[a-z0-9][a-z0-9_/-]*)(?![\w'-])"
)


def approves(clause: str) -> bool:
    """Whether a clause is made of approving words and of what may stand beside them, whole."""
    at, found = 0, False
    if len(clause) > LONGEST_CLAUSE or clause.startswith("please approve"):
        return False
    while at < len(clause):
        if clause[at] in " &":
            at += 1
            continue
        hit = APPROVING.match(clause, at)
        found = found or bool(hit)
        hit = hit or (TAIL.match(clause, at) if found else None)
        hit = hit or BESIDE.match(clause, at)
        if not hit or hit.end() == at:
            return False
        at = hit.end()
    return found


def is_beside(clause: str) -> bool:
    """Whether a clause is made of what may stand beside an approval, and of nothing else."""
    at = 0
    while at < len(clause):
        hit = BESIDE.match(clause, at)
        if not hit:
            return False
        at = hit.end() + (clause[hit.end() : hit.end() + 1] == " ")
    return True
