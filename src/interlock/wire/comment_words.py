"""The words of approval, and what is harmless beside them.

Tables only, as patterns over small letters. Refuses to know how they are weighed. Every pattern
looks at a bounded piece, so reading stays linear.
"""

import re
from typing import Final


def words(*patterns: str) -> re.Pattern[str]:
    """One pattern of whole words from many."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(patterns)})(?![\w-])")


_TROUBLE: Final = (
    r"(?:questions?|conditions?|concerns?|issues|problems?|objections?|complaints?|blockers?"
    r"|reservations?"
    r"|worries|doubts?|nits?|remarks|feedback|findings|red flags|regrets|surprises|hesitation"
    r"|regressions?|errors|failures|bugs|conflicts|showstoppers"
    r"|issue(?! (?:template|link|number|id))|objection"
    r"|(?:changes?|comments?|notes)(?! (?:in|to|on|of|for|about) (?:the|this|any|code|our|your)))"
)
_MORE: Final = (
    r"(?:(?:any|a|single|more|further|other|additional|major|real|open|outstanding|remaining"
    r"|serious|big|new|blocking|particular|obvious|significant) )*"
)
HARMLESS: Final = words(
    rf"(?:with )?no {_MORE}{_TROUBLE}(?: or {_TROUBLE})?"
    r"(?: (?:needed|required|necessary|requested|found|at all|from me|from my side|on my side"
    r"|left|here|so far))?",
    rf"without {_MORE}{_TROUBLE}",
    rf"(?:do not|don't|did not|didn't|could not|couldn't|can't|cannot) (?:see|find|have|spot"
    rf"|notice)"
    rf" (?:any )?{_MORE}{_TROUBLE}",
    rf"not a single {_TROUBLE}",
    r"nothing (?:else |more |further )?(?:to add|to change|to complain about|blocking"
    r"|stands out|wrong"
    r"|missing|jumps out|to fix|to report)",
    r"nothing but (?:praise|good things|love|respect)",
    r"no (?:problem|worries|doubt|brainer|reason to (?:wait|block|delay|hold (?:this|it)(?: up"
    r"| back)?))",
    r"no-brainer",
    r"(?:can't|cannot|can not) wait(?: to (?:see|use|try) (?:it|this))?",
    r"(?:couldn't|could not|can't) be (?:better|happier|clearer)",
    r"last but not least",
    r"as (?:we )?(?:discussed|agreed|talked about)(?: (?:earlier|before|yesterday|on the call))?",
    r"after (?:a |an |my |the |our |some )?(?:careful |thorough |second |final |close |long "
    r"|full |quick )*"
    r"(?:review|reading|read|look|testing|consideration|thought|discussion|rereading|walkthrough)"
    r"(?: (?:it|this|everything|of (?:it|this)|it all))?",
    r"(?:all|my|our|the|both|earlier|previous|open) (?:earlier |previous |open |other )?"
    r"(?:questions?|concerns?|comments?|issues|points|remarks|requests|objections|worries"
    r"|feedback)"
    r"(?: (?:is|are|was|were|have been|has been|got|all|now|been))* (?:answered|addressed"
    r"|resolved"
    r"|handled|fixed|gone|settled|sorted(?: out)?|cleared|taken care of)",
    r"thanks? (?:you )?for (?:the |all the |all |your )?(?:quick )?(?:fix(?:es|ing)?|chang(?:es"
    r"|ing)"
    r"|add(?:ing)?|address(?:ing)?|resolv(?:ing)?|updat(?:es?|ing)|clarif(?:ying|ications?)"
    r"|handl(?:ing)"
    r"|explain(?:ing)|remov(?:ing)|rework(?:ing)?|renam(?:ing)|answer(?:s|ing)|wait(?:ing)"
    r"|your patience)"
    r"(?: (?:the|a|that|all the|those|these|my)(?: (?!(?:but|not|and|however|if|except|yet"
    r"|though|still|once|when"
    r"|only|before|after|please)\b)[a-z-]+))?",
    r"full stop",
    r"no strings attached",
    r"sorry (?:for|about) the (?:delay|late (?:reply|answer|review)|wait)",
    r"sorry (?:it|this) took (?:so|this) long",
    r"(?:previously|earlier|initially|originally|yesterday)(?: (?:i|we))?:? "
    r"(?:not approved|rejected|refused|declined)(?: (?:this|it))?(?=[,;.])",
    r"no need to (?:wait|hold|block|delay|stop|cancel|pause|defer)(?: (?:for me|this|it"
    r"|any longer))?",
    r"no need for (?:changes|another round)",
    r"let's (?:get this done|do this|do it|get going|get started)",
    r"but (?:now )?(?:they're|they are|it's|it is|that's|that is|those are|these are|all)"
    r"(?: (?:all|now|been))* (?:resolved|addressed|fixed|answered|settled)",
    r"non-?stop",
    r"not only",
)
"""What sounds like trouble and is none."""
SUBJECTS: Final = words(
    r"(?:error|failure|bug|crash|conflict) (?:handling|messages?|reports?|recovery|paths?"
    r"|cases?|codes?)"
)
"""What names trouble as a subject of the work."""

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
RESET: Final = re.compile(
    r"(?:\bedit(?:ed)?\b(?: ?\d*)?[:\-—]|\bupdate(?:d)?\b(?: ?\d*)?[:\-—]|\bscratch (?:that"
    r"|this|the above)|\bnever ?mind\b|\bnvm\b|\bignore (?:that|the above|my (?:last|earlier"
    r"|previous))[^.\n]{0,30}|\bdisregard (?:that|the above|my (?:last|earlier"
    r"|previous))[^.\n]{0,30}|\bstrike that\b|\bon second thoughts?\b|\b(?:i(?:'ve"
    r"| have)? )?changed my mind\b|\bi (?:misread|was wrong|misunderstood)[^.\n]{0,40}"
    r"|\bcorrection:)"
)
PAST: Final = re.compile(
    r"\b(?:i|we|my|our)\b[^.\n]{0,40}\b(?:earlier|previous|previously|initially|at first"
    r"|originally|yesterday|before|last (?:week|time|round|review|month)|had|rejected|refused"
    r"|declined)\b"
    r"|\b(?:earlier|previously|initially|at first|originally|yesterday|last (?:week|time"
    r"|round|month))\b[^.\n]{0,40}\b(?:i|we|my|our|not approved|rejected)\b"
)
PAST_WISH: Final = re.compile(
    r"\b(?:i|we)(?: had|'d)? (?:asked for|requested|wanted|was worried|were worried"
    r"|was concerned)\b"
    r"|\b(?:i|we) (?:initially |first |originally )?had (?:some |a few )?(?:concerns?|doubts?"
    r"|questions|worries)\b"
    r"|\bmy (?:earlier|previous|first|last) (?:questions?|concerns?|requests?|reviews?|worr(?:y"
    r"|ies))\b"
)
TELLS: Final = re.compile(
    r"\bway to\b|\bexample of\b|\bgrief\b|\blord\b|\bto avoid\b|\bagree with (?!this|that"
    r"|the (?:plan"
    r"|design)\b|you|it\b|all\b)|\bfor (?:wasting|breaking|nothing|ruining|ignoring|killing)\b"
    r"|\b(?:glad|happy|ready|good|nice|great|free|fine) (?:to (?!see|have|me\b|us\b)"
    r"|for (?!me\b|us\b))"
    r"|\b(?:old|other|wrong|previous|another|different|first|second|third|some|sometimes|hope"
    r"|above|below)\b|"
    r"\b(?:clear|clearly|read|confirmed|verified|glad|happy|like|love|agree|sure|great|good"
    r"|nice) "
    r"(?:that|how|thing|luck|of)\b|\band (?:it|then|that|this|they) (?!works|passes|looks"
    r"|is fine)\w+"
    r"|\b(?:it|that|this) (?!works\b|passes\b|looks\b|is\b|was\b|reads\b|covers\b|makes\b"
    r"|has\b)[a-z]+s\b"
    r"|@\S+ to\b|\bmore\b|\bless\b|\bwants?\b|\bwanted\b|\b(?:will|won't|going|gonna)\b"
)
"""What may stand behind a good word and turn it."""
SETTLED: Final = re.compile(
    r"\b(?:(?:is|are|has been|have been|was|were|got|all|now|i see|that's|that is|it's"
    r"|been) )+(?:now |all |both |finally |also )*"
    r"(?:fixed|resolved|addressed|answered|sorted|green|passing|settled|corrected|done"
    r"|cleared|added|there now)\b"
    r"|\b(?:fixed|resolved|addressed"
    r"|cleared up|sorted out|answered)(?: now)?$|\bpass(?:es)? now\b|\bworks now\b"
)
NOT_BLOCKING: Final = re.compile(
    r"\bnon-?blocking\b|\b(?:not|isn't|aren't|nothing|none of (?:this|these|it|them) (?:is"
    r"|are)) (?:a |any |really |at all )*block(?:ing|ers?)\b|\b(?:does not|doesn't|do not|don't"
    r"|won't|will not|shouldn't|should not|need not|needn't|none of (?:this|these"
    r"|them)) (?:need to |have to |let (?:it|this|that) )*(?:block|hold)\b(?: (?:the|this|it|up"
    r"|merge|approval|you|release|anything))*"
    r"|(?:^|\()optional(?:ly)?(?=[:,)\x20])|\b(?:can|could|may) (?:be |all be "
    r"|also be )?(?:done|handled|fixed|addressed|changed|tackled|improved|happen|come|wait"
    r"|go) (?:later|afterwards?|separately|another time|next time|(?:in|into|for|as) (?:a|the"
    r"|another|some)? ?(?:follow-?up|later|separate|future|next|different)\b[^.\n]{0,20})"
    r"|\bno need to (?:change|fix|do|address|act|block)\b|\bfeel free to (?:ignore"
    r"|skip)(?: (?:it|this|that))?|\btake it or leave it\b|\bno blockers?\b"
    r"|\b(?:in|for|as) a (?:follow-?up|later|separate|future)\b(?: (?:pr|change|issue|ticket"
    r"|commit|story|task))?|\bnot a reason to (?:block|hold|wait)\b|\bnot worth (?:blocking"
    r"|holding|a new round)[^.\n]{0,20}|\bnot required(?: (?:now|here|for this))?\b"
    r"|\bnothing (?:that should|to) (?:block|hold)[^.\n]{0,20}"
)
BINDING: Final = words(
    r"must|required|critical|first|before|block(?:s|ed|ing|er|ers)?|if|unless|once|until"
    r"|as long as|provided|but (?:not|do|only)|only"
)
"""What a remark must not hold that says it does not block."""
GOOD: Final = words(
    r"great|nice|nicely|good|excellent|awesome|solid|clean|cleaner|clear|clearly|love|loved"
    r"|liked|i like|well (?:done|written|thought|structured|sliced|explained|put|organi[sz]ed"
    r"|tested|said)|(?:i|we|i've|we've|just|have) read|thank|thanks|thx|happy|glad|impressive"
    r"|impressed|perfect|perfectly|fine"
    r"|works|worked|passes|passed|pass|passing|green|verified|checked|tested|reviewed"
    r"|confirmed|resolved|addressed|fixed|complete|thorough|thoroughly|solved|beautiful"
    r"|beautifully|elegant|neat|sensible|sense|agree|agreed|congrats|congratulations|kudos"
    r"|helpful|appreciate|appreciated|enjoy|enjoyed|smooth|smoothly|amazing|super|brilliant"
    r"|correct|reasonable|sound|ready|covered|covers|matches|match|expected|wonderful"
    r"|fantastic|lovely|improvement|improved|cheers|regards|easy|readable"
    r"|useful|exactly|precisely|pleasure|proud|bravo|outstanding|superb|tidy|crisp|robust"
    r"|careful|patient|patience|effort|hard work|merging|merged|excited"
    r"|looking forward|simple|ran|went through|walked through|locally|yes|yep|ok|okay"
    r"|sure|approval"
)
NEUTRAL: Final = re.compile(
    r"(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))(?: (?:all|team|folks|everyone"
    r"|there))?|regards|best(?: regards| wishes)?|kind regards|cheers|sincerely|thanks?|review"
    r"|verdict|decision|my (?:review|verdict|decision|answer)|answer|status|summary|result|fyi"
    r"|ps|cc|and|so|then|also|now|edit|update|ok|okay|yes|well|tl;?dr|from my side|from me"
    r"|for me|as is|as-is|\+1|all|in short|bottom line|done|agreed|final answer|final verdict"
    r"|conclusion|after reading it all|today|reasons?"
    r"|(?:i )?(?:just |finally )?(?:had|took) (?:a|another)(?: closer| good| proper)? look"
    r"|(?:i )?finally had time to (?:review|look)"
    r"|i'll merge (?:it|this)(?: now| myself| today)?)"
)
_PRAISE: Final = (
    r"(?:very |really |so |all |quite |especially )*(?:great|nice|good|excellent|awesome|solid"
    r"|clean"
    r"|clear|perfect|fine|thorough|beautiful|elegant|neat|sensible|helpful|amazing|brilliant"
    r"|correct"
    r"|reasonable|sound|covered|complete|wonderful|fantastic|lovely|green|readable|tidy|crisp"
    r"|robust"
    r"|well (?:sliced|written|done|structured|explained)|resolved|addressed|answered|neat)"
)
_THING: Final = r"(?:the |your |this |these |all the |that )(?:[a-z][a-z0-9-]*+ ?|\x01+ ?){1,4}?"
FRAMES: Final = re.compile(
    rf"(?:{_THING}|(?:all three )?[a-z]+) ?(?:is|are|looks|look|works"
    rf"|reads) ?(?:{_PRAISE}(?: and {_PRAISE})*| well| great)?(?: now)?"
    rf"|(?:(?:very |really )?(?:great|nice|good|excellent|awesome|amazing) )?(?:work|job"
    rf"|catch) (?:on|with) "
    rf"{_THING}|thanks? (?:you )?(?:so much )?for {_THING}"
    rf"|i (?:really |especially |also )?(?:like|love|enjoyed|appreciate) {_THING}"
    rf"|(?:i |we )?(?:have |'ve |also )*(?:tested|checked|verified|reviewed|ran|read"
    rf"|walked through|went through) "
    rf"{_THING}(?:(?:locally|on staging|this morning|yesterday|today|and {_THING} ?match))?"
    r"|(?:very |really )?(?:nice|great|good|excellent|solid|neat|lovely) (?:button|clean-?up"
    r"|stuff|plan|design"
    r"|refactoring|solution|write-?up|description|tests?|fix|improvement|feature|change|docs)"
    r"|\x01+ is (?:neat|great|nice|good)"
)
"""Sentences whose subject may be anything, because what they say of it is praise."""
PLAIN_WORDS: Final = frozenset(
    [
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "it",
        "its",
        "it's",
        "i",
        "i'm",
        "i've",
        "am",
        "we",
        "we've",
        "you",
        "your",
        "my",
        "our",
        "me",
        "us",
        "they",
        "them",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "and",
        "so",
        "very",
        "really",
        "all",
        "everything",
        "of",
        "on",
        "in",
        "to",
        "for",
        "with",
        "at",
        "from",
        "here",
        "there",
        "now",
        "today",
        "already",
        "also",
        "just",
        "both",
        "everyone",
        "much",
        "again",
        "out",
        "plan",
        "design",
        "doc",
        "docs",
        "document",
        "epic",
        "story",
        "stories",
        "test",
        "tests",
        "testing",
        "code",
        "change",
        "changes",
        "work",
        "job",
        "team",
        "effort",
        "review",
        "section",
        "numbers",
        "metrics",
        "criteria",
        "acceptance",
        "rollout",
        "migration",
        "risks",
        "description",
        "structure",
        "write-up",
        "writeup",
        "explanation",
        "update",
        "locally",
        "staging",
        "ci",
        "build",
        "pipeline",
        "checks",
        "cases",
        "results",
        "part",
        "gone",
        "through",
        "whole",
        "thing",
        "full",
        "support",
        "side",
        "end",
        "machine",
        "ship",
        "security",
        "product",
        "prd",
        "look",
        "looks",
        "twice",
        "what",
        "need",
        "three",
        "order",
        "exactly",
        "quick",
        "fix",
        "fixes",
        "patience",
        "one",
        "live",
        "see",
        "forward",
        "looking",
        "makes",
        "works",
        "well",
    ]
)
"""Words that turn no praise into its opposite."""
