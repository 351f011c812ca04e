"""An agent that thinks for a while: reads its prompt, sleeps SECONDS, answers its step plainly."""

import json
import os
import sys
import time

ANSWERS = {
    "F0_RECALL": {"match": False, "confidence": 0.1, "reasoning": "new"},
    "F1_TRIAGE": {
        "symptom_category": "product",
        "defect_type_hypothesis": "pb001",
        "candidate_repos": ["shop-api"],
        "skip_investigation": False,
    },
    "F2_RESOLVE": {"selected_repos": [{"name": "shop-api", "reason": "prices"}]},
    "F3_INVESTIGATE": {
        "rca_message": "coupons stack in shop-api",
        "defect_type": "pb001",
        "component": "shop-api",
        "convergence_score": 0.9,
        "evidence_refs": ["shop-api:pricing/coupons.py:apply_coupon"],
    },
    "F4_CORRELATE": {"is_duplicate": False, "confidence": 0.1},
    "F5_REVIEW": {"decision": "approve"},
    "F6_REPORT": {"summary": "coupons"},
}

if __name__ == "__main__":
    sys.stdin.read()
    time.sleep(float(sys.argv[1]))
    print(json.dumps(ANSWERS[os.environ["INTERLOCK_STEP"]]))
