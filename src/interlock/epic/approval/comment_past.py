"""What is over and what does not block: earlier refusals, fresh starts, remarks.

Tables only, as patterns over small letters. Refuses to know how they are weighed. Every pattern
looks at a bounded piece, so reading stays linear.
"""

import re
from typing import Final

from interlock.epic.approval.comment_words import words

RESET: Final = re.compile(
    r"(?:\bedit(?:ed)?\b(?: ?\d*)?[:\-—]|\bupdate(?:d)?\b(?: ?\d*)?[:\-—]|\bscratch (?:that|this"
    r"|the above)|\bnever ?mind\b|\bnvm\b|\bignore (?:that|the above|my (?:last|earlier"
    r"|previous))[^.,;:\n]{0,30}|\bdisregard (?:that|the above|my (?:last|earlier"
    r"|previous))[^.,;:\n]{0,30}|\bstrike that\b|\bon second thoughts?\b|\b(?:i(?:'ve"
    r"| have)? )?changed my mind\b|\bi (?:misread|was wrong|misunderstood)[^.,;:\n]{0,40}"
    r"|\bcorrection:)"
)
PAST: Final = re.compile(
    r"\b(?:i|we|my|our)\b[^.\n]{0,40}\b(?:earlier|previous|previously|initially|at first"
    r"|originally|yesterday|before|last (?:week|time|round|review|month)|had|rejected|refused"
    r"|declined)\b|\b(?:earlier|previously|initially|at first|originally|yesterday|last (?:week"
    r"|time|round|month))\b[^.\n]{0,40}\b(?:i|we|my|our|not approved|rejected)\b"
)
PAST_WISH: Final = re.compile(
    r"(?<!what )\b(?:i|we)(?: had|'d)? (?:asked for|requested|wanted|was worried|were worried"
    r"|was concerned)\b|\b(?:i|we) (?:initially |first |originally )?had (?:some "
    r"|a few )?(?:concerns?|doubts?|questions|worries)\b|\bmy (?:earlier|previous|first"
    r"|last) (?:questions?|concerns?|requests?|reviews?|worr(?:y|ies))\b"
)
SETTLED: Final = re.compile(
    r"\b(?:(?:is|are|has been|have been|was|were|got|all|now|i see|that's|that is|it's"
    r"|been) )+(?:now |all |both |finally |also )*(?:fixed|resolved|addressed|answered|sorted"
    r"|green|passing|settled|corrected|done|cleared|added|there now)\b|\b(?:fixed|resolved"
    r"|addressed|cleared up|sorted out|answered)(?: now)?$|\bpass(?:es)? now\b|\bworks now\b"
)
NOT_BLOCKING: Final = re.compile(
    r"\bnon-?blocking\b|\b(?:not|isn't|aren't|nothing|none of (?:this|these|it|them) (?:is"
    r"|are)) (?:a |any |really |at all )*block(?:ing|ers?)\b|\b(?:does not|doesn't|do not|don't"
    r"|won't|will not|shouldn't|should not|need not|needn't|none of (?:this|these"
    r"|them)) (?:need to |have to |let (?:it|this|that) )*(?:block|hold)\b(?: (?:the|this|it|up"
    r"|merge|approval|you|release|anything))*|(?:^|\()optional(?:ly)?(?=[:,)\x20])|\b(?:can|could"
    r"|may) (?:be |all be |also be )?(?:done|handled|fixed|addressed|changed|tackled|improved"
    r"|happen|come|wait|go) (?:later|afterwards?|separately|another time|next time|(?:in|into|for"
    r"|as) (?:a|the|another|some)? ?(?:follow-?up|later|separate|future|next"
    r"|different)\b[^.,;:\n]{0,20})|\bno need to (?:change|fix|do|address|act|block)\b"
    r"|\bfeel free to (?:ignore|skip)(?: (?:it|this|that))?|\btake it or leave it\b"
    r"|\bno blockers?\b|\b(?:in|for|as) a (?:follow-?up|later|separate|future)\b(?: (?:pr|change"
    r"|issue|ticket|commit|story|task))?|\bnot a reason to (?:block|hold|wait)\b"
    r"|\bnot worth (?:blocking|holding|a new round)[^.,;:\n]{0,20}|\bnot required(?: (?:now|here"
    r"|for this))?\b|\bnothing (?:that should|to) (?:block|hold)[^.,;:\n]{0,20}"
)
BINDING: Final = words(
    r"must|required|critical|first|before|block(?:s|ed|ing|er|ers)?|if|unless|once|until"
    r"|as long as|provided|when|after|pending|assuming|subject to|depending|contingent|but (?:not"
    r"|do|only)|only"
)
"""What a remark must not hold that says it does not block."""
