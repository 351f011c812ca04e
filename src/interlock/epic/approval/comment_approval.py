"""The words of approval, and whether a clause is made of them.

Knows the closed grammar of a clause that approves: who, the word, what, and what may stand beside
it. Refuses to know what the rest of the comment says. Every pattern looks at a bounded piece.
"""

import re
from typing import Final

LONGEST_CLAUSE: Final = 300
"""Characters of a clause that is looked at."""
_WORK: Final = (
    r"(?:plan|(?:ux |architecture )?design|product requirements document|doc|document|proposal|prd"
    r"|architecture|epic|story|changes?|request|spec|specification|draft|version|implementation"
    r"|work|phase|task|update|revision|rework|write-?up|rfc|checkpoint|solution)"
)
"""What a request is about as a whole: a part of it, or what lies elsewhere, is not in here."""
_THAT: Final = (
    r"(?:(?:the|this|that|your|these) (?:whole |entire |full |new |latest |current |updated "
    rf"|revised |complete |final |proposed )*{_WORK}(?: and (?:the )?{_WORK})?"
    r"|all of (?:it|this|them)|it all|this all|this one|this|it|that|these|them|everything|both"
    r"|all)(?![\w-])"
)
_IT: Final = rf"(?:{_THAT}|{_WORK}(?: and (?:the )?{_WORK})?(?![\w-]))"
_FULLY: Final = (
    r"(?:fully|completely|totally|absolutely|happily|gladly|hereby|formally|officially|very|really"
    r"|so|all|now|definitely|wholeheartedly|unconditionally|enthusiastically|also|extremely)"
)
_MAY: Final = (
    r"(?:(?:please|pls|do|you can|you may|you are free to|you're free to|feel free to|let's|lets"
    r"|let us|we can|we may|ok to|okay to|free to|clear to|you're good to|you are good to"
    r"|happy for you to|you can now|go|i want you to) )*"
)
_MAKE: Final = r"(?:merge|proceed|ship|implement|start|continue|build|deploy|begin|release|execute)"
_NEXT: Final = r"(?:(?:the )?next (?:step|phase|stage|story|task)|phase \d+)"
_WITH: Final = rf"(?:{_NEXT}|(?:the )?(?:implementation|merge)|merging|{_IT})"
_WE_HAVE: Final = r"(?:(?:i|we) have|i've|we've)"
_WE_ARE: Final = r"(?:(?:i'm|i am|we're|we are) )?"
_FORMS: Final = (
    rf"(?:i|we)(?: do)? (?:{_FULLY} )*approve(?:(?: of)? {_THAT})?",
    rf"{_WE_HAVE} (?:{_FULLY} )*approved(?: {_THAT})?",
    (
        rf"(?:i|we|{_WE_HAVE}) (?:reviewed|read|checked|tested|verified)(?: {_IT})? and "
        rf"(?:{_FULLY} )*approved?(?: {_THAT})?"
    ),
    rf"{_WE_ARE}(?:happy|glad|pleased|delighted) to approve(?: {_THAT})?",
    rf"{_WE_ARE}(?:{_FULLY} )*approving(?: {_THAT})?",
    rf"(?:{_FULLY} )*approved(?: {_THAT})?",
    rf"{_IT} (?:is |are )?(?:{_FULLY} )*approved",
    rf"(?:it's|that's) (?:{_FULLY} )*approved",
    rf"(?:i )?consider {_IT} approved",
    (
        r"(?:this |a |an |big |it's a |it's an |that's a |that's an |this is a |this is an )*"
        rf"lgtm+(?: {_IT})?"
    ),
    rf"{_MAY}ship (?:it|this)(?: now| today)?(?: please)?",
    (
        rf"{_MAY}go (?:right )?ahead(?: (?:with|on) {_WITH}| and {_MAKE}(?: {_IT})?"
        rf"|,? {_MAKE}(?: {_IT})?)?(?: please)?"
    ),
    (
        r"(?:(?:you have|you've got|you got|you've) (?:my|our)"
        r"|(?:i|we) give (?:you |this )?(?:my|our)) go[ -]ahead"
    ),
    (
        rf"{_MAY}proceed(?: (?:with (?:{_WITH}|confidence)|as (?:planned|proposed|written"
        rf"|described)|to (?:implementation|{_NEXT})))?(?: please)?"
    ),
    rf"(?:{_IT} )?(?:{_FULLY} )*looks?(?: {_FULLY})* good",
)
APPROVING: Final = re.compile(rf"(?:{'|'.join(_FORMS)})(?![\w'-])")
"""What approves, if the whole clause is made of it and of what may stand beside it."""
VOTE: Final = re.compile(rf"(?:(?:{_FULLY}|yes|ok|okay) )*approve(?: {_THAT})?")
"""A bare `approve` is a vote when it stands alone; behind a name it asks somebody else for one."""
_AS: Final = (
    r"(?:(?:speaking )?as (?:the |a )?(?:product |tech |team |code )?(?:owner|maintainer|lead|po)"
    r"|on behalf of the team)"
)
"""In what role somebody speaks who may answer."""
TAIL: Final = re.compile(
    r"(?:from (?:me|us|here|my (?:side|end|pov|perspective|part|point of view)|our (?:side|end))"
    r"|on behalf of (?:the )?(?:[a-z]+ )?team|for (?:this|it)|(?:to|for|by|with) (?:me|us)"
    r"|on (?:my|our) (?:side|end|part)|for (?:merge|merging|release|implementation|production"
    r"|the next (?:phase|step|stage)|shipping)|to (?:merge|ship|proceed|release|go|implement"
    r"|be merged)|as (?:is|-is|written|proposed|planned|described|it is|it stands)|as-is"
    r"|(?<!then )again|in full|in its entirety|right away|today|at once|any time|whole"
    r"|unconditionally|with (?:pleasure|thanks|joy)|for all of it)(?![\w'-])"
)
BESIDE: Final = re.compile(
    r"(?:(?:(?:i|we)(?:'ve| have)? )?(?:reviewed|read|tested|checked|verified|signed off)"
    rf"(?: {_IT})?(?! (?:by|in|on))|go for it|let's (?:go|do (?:this|it))|go go go|of course"
    r"|as always|ah|wow|got it|noted|understood|(?:permission )?granted|cc|i'm in|(?:everything "
    r"|it |all |it all )?checks out|(?:(?:that's|it's|it is) )?a?(?:(?<=a) )?(?:big "
    r"|clear )?yes from (?:me|us)"
    rf"|{_AS}|(?:great|good|nice|fantastic|excellent) (?:progress|thinking|teamwork|news)"
    r"|finally|carry on|i confirm|sure thing|yes please|please continue|sounds (?:good|great"
    r"|perfect|fine)(?: to me)?|makes (?:total |perfect |a lot of )?sense(?: to me)?"
    r"|works for (?:me|us)|(?:fine|good) (?:with|by) me|all set|(?:you're |you are )?good to go"
    r"|green light|thumbs up|merge (?:it|this|away)|from (?:me|my side)|happy coding"
    r"|have a (?:great|nice|good|lovely) (?:day|weekend|evening|week|one)|enjoy your (?:weekend"
    r"|day)|\+1|yes|yep|yeah|yup|yay|ok|okay|sure|great|cool|perfect|nice|nicely done|excellent"
    r"|awesome|wonderful|fantastic|brilliant|lovely|superb|good (?:stuff|work|job)|well done|done"
    r"|thanks?(?: you)?(?: (?:so much|very much|a lot|a ton|again|everyone|all|team|folks))?"
    r"|thx(?: a lot| a ton)?|ty|tysm|cheers|many thanks|all good|all right|alright|absolutely"
    r"|definitely|then|so|and|indeed|hi|hello|hey|(?:team|folks|everyone|guys|mate|boss|sir"
    r"|my friend|buddy|friends)(?! (?:approve|lgtm|looks|go|proceed|ship))|all|work|job|i like it"
    r"|love it|i love it|this is (?:great|good)|agreed|fine|super|sweet|amazing|great (?:work|job"
    r"|stuff)|nice (?:work|job|one)|kudos|congrats|now|confirmed|happy with (?:it|this)|good|solid"
    r"|clean|here|from the team|@(?:interlock[a-z0-9_-]*"
    r"|[a-z0-9][a-z0-9_/-]*+(?! approved)))(?![\w'-])"
)


def approves(clause: str) -> bool:
    """Whether a clause is made of approving words and of what may stand beside them, whole."""
    at, found = 0, False
    if len(clause) > LONGEST_CLAUSE:
        return False
    if VOTE.fullmatch(clause):
        return True
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
