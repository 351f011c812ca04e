"""What is harmless beside an approval: thanks, praise, what the reader did.

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
    r"|reservations?|worries|doubts?|nits?|remarks|feedback|findings|red flags|regrets|surprises"
    r"|hesitation|regressions?|errors|failures|bugs|conflicts|showstoppers|action"
    r"|issue(?! (?:template|link|number|id))|objection|(?:changes?|comments?|notes)(?! (?:in|to|on"
    r"|of|for|about) (?:the|this|any|code|our|your)))"
)
_MORE: Final = (
    r"(?:(?:any|a|single|more|further|other|additional|major|real|open|outstanding|remaining"
    r"|serious|big|new|blocking|particular|obvious|significant) )*"
)
HARMLESS: Final = words(
    r"(?:good|great|nice|excellent|lovely|brilliant|(?:like|love) (?:the|this|your)) (?:idea"
    r"|approach|direction)",
    r"(?:exactly|just|this is|that's|that is) what (?:we|i) (?:discussed|agreed(?: on)?|wanted"
    r"|asked for|needed|had in mind)(?= *(?:[,.:;!]|$))",
    r"(?:as )?per (?:our|the|yesterday's|today's) (?:call|chat|discussion|meeting|conversation)",
    r"we (?:discussed|talked about) (?:this|it)(?: (?:yesterday|today|earlier|on the call"
    r"|in (?:the|our) (?:meeting|call|standup)))?(?= *(?:[,.:;!]|$))",
    r"(?:let me know|(?:ping|call|ask|poke) me) (?:if|when) (?:you need (?:anything|something"
    r"|help|me)(?: else| from me| with it)?|i can help|you have (?:any )?questions"
    r"|anything comes up|you get stuck)",
    r"(?:much|way|a lot) better(?: now| than before)?(?= *(?:[,.:;!]|$))"
    r"|better now(?= *(?:[,.:;!]|$))",
    r"let me know how it goes|keep (?:me|us) posted|keep (?:going|it up)|no rush",
    r"sorry (?:that )?i (?:missed|overlooked) (?:this|it)(?: (?:earlier|before|yesterday))?",
    r"(?:that|this|which) (?:answers|resolves|addresses|settles) (?:all )?(?:my|our|the) (?:open "
    r"|earlier |last |remaining )*(?:questions?|concerns?|points?|doubts?|issues)",
    r"you(?:'ve| have)? (?:addressed|resolved|answered|fixed|handled) (?:all )?(?:of )?(?:my|our"
    r"|the) (?:open |earlier |last |remaining )*(?:questions?|concerns?|comments?|points?|issues)",
    r"the (?:issues?|problems?|points?|concerns?|questions?|comments?) (?:i|we) (?:raised|had"
    r"|found|mentioned|reported)(?: (?:is|are|was|were|has been|have been|all|now))+ (?:fixed"
    r"|resolved|addressed|answered|gone)",
    r"(?:can't|cannot|couldn't|could not|don't|did not|didn't) (?:find|see"
    r"|spot) anything wrong(?: (?:with|in) (?:it|this|the plan)| here)?",
    rf"(?:with )?(?:no|zero) {_MORE}{_TROUBLE}(?: or {_TROUBLE})?"
    r"(?: (?:needed|required|necessary|requested|found|at all|from me|from my side|on my side"
    r"|left|here|so far))?",
    rf"without {_MORE}{_TROUBLE}",
    rf"(?:do not|don't|did not|didn't|could not|couldn't|can't|cannot) (?:see|find|have|spot"
    rf"|notice) (?:any )?{_MORE}{_TROUBLE}",
    rf"not a single {_TROUBLE}",
    r"nothing (?:else |more |further )?(?:from (?:me|my side)|to add|to change|to complain about"
    r"|blocking|stands out|wrong|missing|jumps out|to fix|to report)",
    r"nothing but (?:praise|good things|love|respect)",
    r"no (?:problem|worries|doubt|brainer|reason to (?:wait|block|delay|hold (?:this|it)(?: up"
    r"| back)?))",
    r"no-brainer",
    r"(?:can't|cannot|can not) wait(?: to (?:see|use|try) (?:it|this))?",
    r"(?:couldn't|could not|can't) be (?:better|happier|clearer)",
    r"last but not least",
    r"as (?:we )?(?:discussed|agreed|talked about)(?: (?:earlier|before|yesterday|on the call))?",
    r"after (?:a |an |my |the |our |some )?(?:careful |thorough |second |final |close |long "
    r"|full |quick )*(?:review|reading|read|look|testing|consideration|thought|discussion"
    r"|rereading|walkthrough)(?: (?:it|this|everything|of (?:it|this)|it all))?",
    r"(?:all|my|our|the|both|earlier|previous|open) (?:[a-z]+ )?(?:questions?|concerns?|comments?"
    r"|issues|points|remarks|requests|objections|worries|feedback)(?: (?:is|are|was|were"
    r"|have been|has been|got|all|now|been))* (?:answered|addressed|resolved|handled|fixed|gone"
    r"|settled|sorted(?: out)?|cleared|taken care of)",
    r"thanks? (?:you )?for (?:the |all the |all |your )?(?:quick )?(?:fix(?:es|ing)?|chang(?:es"
    r"|ing)|add(?:ing)?|address(?:ing)?|resolv(?:ing)?|updat(?:es?|ing)|clarif(?:ying|ications?)"
    r"|handl(?:ing)|explain(?:ing)|remov(?:ing)|rework(?:ing)?|renam(?:ing)|answer(?:s|ing)"
    r"|wait(?:ing)|your patience)(?: (?:the|a|that|all the|those|these|my)(?: (?!(?:but|not|and"
    r"|however|if|except|yet|though|still|once|when|only|before|after|please)\b)[a-z-]+))?",
    r"full stop",
    r"no strings attached",
    r"(?:sorry|apologies|my apologies) (?:for|about) the (?:delay|late (?:reply|answer|review)"
    r"|wait)",
    r"sorry (?:it|this) took (?:so|this) long",
    r"(?:previously|earlier|initially|originally|yesterday)(?: (?:i|we))?:? (?:not approved"
    r"|rejected|refused|declined)(?: (?:this|it))?(?=[,;.])",
    r"no need to (?:wait|hold|block|delay|stop|cancel|pause|defer)(?: (?:for me|this|it"
    r"|any longer))?",
    r"no need for (?:changes|another round)",
    r"let's (?:get (?:this|it) done|do this|do it|get going|get started)",
    r"but (?:now )?(?:they're|they are|it's|it is|that's|that is|those are|these are"
    r"|all)(?: (?:all|now|been))* (?:resolved|addressed|fixed|answered|settled)",
    r"non-?stop",
    r"not only",
)
"""What sounds like trouble and is none."""
SUBJECTS: Final = words(
    r"risks? (?:section|register|list|table|analysis|assessment|mitigation)",
    r"(?:error|failure|bug|crash|conflict) (?:handling|messages?|reports?|recovery|paths?|cases?"
    r"|codes?)",
)
"""What names trouble as a subject of the work."""

TELLS: Final = re.compile(
    r"\bto be\b|\bway to\b|\bexample of\b|\bgrief\b|\blord\b|\bto avoid\b|\bagree with (?!this"
    r"|that|everything|the (?:plan|design)\b|you|it\b|all\b)|\bfor (?:wasting|breaking|nothing"
    r"|ruining|ignoring|killing)\b|\b(?:glad|happy|ready|good|nice|great|free|fine) (?:to (?!see"
    r"|have|me\b|us\b)|for (?!me\b|us\b))|\b(?:old|other|wrong|previous|another|different|first"
    r"|second|third|some|sometimes|hope|above|below)\b|\b(?:clear|clearly|read|confirmed|verified"
    r"|glad|happy|like|love|agree|sure|great|good|nice) (?:that|how|thing|luck|of)\b|\band (?:it"
    r"|then|that|this|they) (?!works?\b|pass(?:es)?\b|looks?\b|match|(?:is|are) fine)\w+|\b(?:it"
    r"|that|this) (?!works\b|passes\b|looks\b|is\b|was\b|reads\b|covers\b|makes\b|has\b)[a-z]+s\b"
    r"|@\S+ to\b|\bmore\b|\bless\b|\bwants?\b|\bwanted\b|\b(?:will|won't|going|gonna)\b"
)
"""What may stand behind a good word and turn it."""
GOOD: Final = words(
    r"great|nice|nicely|good|excellent|awesome|solid|clean|cleaner|clear|clearly|love|loved|liked"
    r"|i like|i really like|exactly right|sure thing|well (?:done|sized|written|thought|structured"
    r"|sliced|explained|put|organi[sz]ed|tested|said)|(?:i|we|i've|we've|just|have) read|thank"
    r"|thanks|thx|happy|glad|impressive|impressed|perfect|perfectly|fine|works|worked|passes"
    r"|passed|pass|(?:is|are|all|now) passing|green|verified|checked|tested|reviewed|confirmed"
    r"|resolved|addressed|fixed|complete|thorough|thoroughly|solved|beautiful|beautifully|elegant"
    r"|neat|sensible|sense|agree|agreed|congrats|congratulations|kudos|helpful|appreciate"
    r"|appreciated|enjoy|enjoyed|smooth|smoothly|amazing|super|brilliant|correct|reasonable|sound"
    r"|ready|covered|covers|matches|match|expected|wonderful|fantastic|lovely|improvement|improved"
    r"|cheers|regards|easy|readable|useful|exactly|precisely|pleasure|proud|bravo|outstanding"
    r"|superb|tidy|crisp|robust|confident|convinced|satisfied|met|meets|addresses|answers|trivial"
    r"|straightforward|scoped|acceptable|included|patient|patience|effort|hard work|merging|merged"
    r"|excited|looking forward|simple|ran|went through|walked through|locally|yes|yep|ok|okay|sure"
    r"|approval"
)
NEUTRAL: Final = re.compile(
    r"(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))(?: (?:all|team|folks|everyone"
    r"|there))?|regards|best(?: regards| wishes)?|kind regards|cheers|sincerely|thanks?|review"
    r"|verdict|decision|my (?:review|verdict|decision|answer)|answer|status|summary|result|fyi|ps"
    r"|cc|and|so|then|also|now|edit|update|ok|okay|yes|well|from my side|from me|for me|as is"
    r"|as-is|\+1|all|in short|bottom line|done|agreed|final answer|final verdict|conclusion"
    r"|outcome|(?:my |final )?vote|works like a charm|(?:it )?does what it says|confirmed working"
    r"|(?:nice|short) and (?:small|sweet|clean|simple)|(?:i )?(?:can |have )?(?:verified|confirm"
    r"|confirmed|checked) (?:that )?(?:it|this|everything|(?:the |all )?tests) (?:works?"
    r"|pass(?:es)?)|after reading it all|today|reasons?|(?:i )?(?:just |finally )?(?:had"
    r"|took) (?:a|another)(?: closer| good| proper)? look|(?:i )?finally had time to (?:review"
    r"|look)|i'll merge (?:it|this)(?: now| myself| today)?)"
)
_PRAISE: Final = (
    r"(?:very |really |so |all |quite |especially )*(?:great|nice|good|excellent|awesome|solid"
    r"|clean|clear|perfect|fine|thorough|beautiful|elegant|neat|sensible|helpful|amazing|brilliant"
    r"|correct|reasonable|sound|covered|complete|wonderful|fantastic|lovely|green|readable|tidy"
    r"|crisp|robust|well (?:sliced|sized|written|done|structured|explained)|resolved|addressed"
    r"|answered|neat)"
)
_THING: Final = r"(?:the |your |this |these |all the |that )(?:[a-z][a-z0-9-]*+ ?|\x01+ ?){1,4}?"
_WORKING: Final = (
    r"(?:turning|clearing|splitting|preparing|writing|doing|putting|taking|adding|making|sharing"
    r"|explaining|getting|working|handling|picking|being|keeping|looking|sorting|pushing|jumping"
    r"|driving|organi[sz]ing|summari[sz]ing|documenting|reviewing|addressing|fixing|updating"
    r"|cleaning|following|bringing|finding|catching|helping|testing|checking|answering)"
)
FRAMES: Final = re.compile(
    rf"(?:{_THING}|(?:all three )?[a-z]+) ?(?:is|are|looks|look|works"
    rf"|reads) ?(?:{_PRAISE}(?: and {_PRAISE})*| well| great)?(?: now)?|(?:(?:very "
    rf"|really )?(?:great|nice|good|excellent|awesome|amazing) )?(?:work|job|catch) (?:on"
    rf"|with) {_THING}|thanks? (?:you )?(?:so much )?(?:@[a-z0-9-]+ )?for {_THING}"
    rf"|(?:i )?(?:really |especially |also )?(?:like|love|enjoyed|appreciate) {_THING}"
    r"|(?:i )?(?:really |especially |also )*(?:like|love) (?:it|this|that)"
    rf"|thanks? (?:you )?(?:so much |a lot |again )?for {_WORKING}(?: [a-z][a-z'-]*){{0,6}}"
    r"|(?:nice|great|good|glad|happy) to (?:see|have|read) (?:it|this|that|these)(?: (?:moving"
    r"|happening|done|finished|progressing|landing|coming together))?|happy to help"
    r"|(?:[a-z ]{0,30}and )?easy to (?:follow|read)|(?:very |really )?(?:nice|great|good|excellent"
    r"|solid|neat|lovely) (?:button|clean-?up|stuff|plan|design|refactoring|solution|write-?up"
    r"|description|tests?|fix|improvement|feature|change|docs)|\x01+ is (?:neat|great|nice|good)"
)
"""Sentences whose subject may be anything, because what they say of it is praise."""
_SUBJECT: Final = (
    r"(?:tests?|docs?|ci|build|pipeline|checks?|migration|rollback|schema|changelog|coverage|smoke"
    r"|manual|unit|integration|plan|stories|criteria|numbers|diagrams?|benchmarks?|lint|types"
    r"|staging|code|spec|review|metrics|results?|edge|cases|queries|index|api|design)"
)
_HOW: Final = (
    r"(?: (?:locally|twice|again|carefully|thoroughly|today|yesterday|now|myself|too|as well"
    r"|this (?:morning|afternoon|week)|(?:on|in) (?:staging|my machine|full|detail)|end to end"
    r"|(?:line|chapter|story|page) by (?:line|chapter|story|page)))*"
)
_LOOK: Final = r"(?:a|another)(?: (?:good|close|closer|proper|careful|thorough|long|second))* look"
_WHAT: Final = rf"(?:it(?: all)?|this|them|everything|all of it|{_THING}(?: ?and {_THING})?)"
DEEDS: Final = re.compile(
    r"(?:(?:i|we)(?:'ve| have)? )?(?:just |finally |also |already )*(?:(?:read(?: through)?"
    r"|reviewed|tested|tried|checked|double-?checked|verified|validated|inspected|studied|ran"
    rf"|(?:went|walked|gone|been) (?:through|over)|looked (?:at|through|over)|(?:had"
    rf"|took) {_LOOK}(?: at| through| over)?|got around to reading)(?: ?{_WHAT})?"
    rf"|finished (?:reading|reviewing)(?: {_WHAT})?|compared {_WHAT} with {_WHAT}) ?{_HOW}"
    r"(?: and (?:it|they|everything|all)(?: all)? (?:works?|pass(?:es)?|match(?:es)?|(?:is"
    r"|are) fine))?"
    rf"|(?:(?:line|chapter|story|page) by (?:line|chapter|story|page))"
    r"|(?:it |this )?took me a (?:while|bit|moment)(?: to (?:read|review) (?:it|this)(?: all)?)?"
    rf"|(?:the |all |all the |both |and the |and )?(?:{_SUBJECT} ){{1,3}}(?:is |are |was |were "
    r"|has been |have been )?(?:all |now |also |already )*(?:updated|done|there|in place|passed"
    r"|green"
    rf"|pass|ok|fine|documented|rehearsed|covered|complete){_HOW}|(?:and )?(?:the "
    rf"|all )?(?:{_SUBJECT} ){{1,2}}covers? (?:the |all |all the )?{_SUBJECT}(?: {_SUBJECT})?"
    rf"|(?:it )?(?:all )?works as (?:expected|described|intended|planned){_HOW}"
)
"""What the reader did and found in order: closed verbs about whatever they read."""
CHECKED: Final = re.compile(
    r"(?:what |things |here is what )?(?:(?:i|we)(?:'ve| have)? )?(?:also )?(?:checked|reviewed"
    r"|tested|verified|read|looked at|went through):"
)
"""A heading whose list names what was read; its items approve and hold back nothing."""
ITEM: Final = re.compile(r"(?:\[x\] +)?(?:the |all |all the )?[a-z][a-z-]*(?: [a-z][a-z-]*){0,3}")
SCOPE: Final = words(
    r"for|in|on|to|with|at|from|of|(?:the )?(?:story|stories|part|parts|phase|step|option|item"
    r"|section|chapter) [\w-]+"
)
"""How a piece begins that says how far an approval goes."""
PLAIN_WORDS: Final = re.compile(
    r"(?:a|acceptance|again|all|already|also|am|an|and|are|at|be|been|both|build|cases|change"
    r"|changes|checks|ci|code|criteria|description|design|doc|docs|document|effort|end|epic"
    r"|everyone|everything|exactly|explanation|fix|fixes|for|forward|from|full|gone|had|has|have"
    r"|here|i|i'm|i've|in|is|it|it's|its|job|just|live|locally|look|looking|looks|machine|makes|me"
    r"|metrics|migration|much|my|need|now|numbers|of|on|one|order|our|out|part|patience|pipeline"
    r"|plan|prd|product|quick|really|results|review|risks|rollout|section|security|see|ship|side"
    r"|so|staging|stories|story|structure|support|team|test|testing|tests|that|the|them|there"
    r"|these|they|thing|this|three|through|to|today|twice|update|us|very|was|we|we've|well|were"
    r"|what|whole|with|work|works|write-up|writeup|you|your|points|requirements|risks|what|you've"
    r"|got|gets|give|stands|sounds|news|fully|around|together|again|quite|every|both|always"
    r"|estimates?|timeline|rationale|reasoning|examples|diagrams?|names|naming|api|schema|logic"
    r"|rollback|retry|flow|details?|wording|layout|coverage|queries|summary|context|milestones"
    r"|tasks|steps|goals|reading|proposal|epic)"
)
"""Words that turn no praise into its opposite."""
