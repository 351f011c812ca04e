"""Checkpoints in the four shapes of older tools, written for these tests."""

from typing import Any

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"


def nested() -> dict[str, Any]:
    return {
        "version": "1.0",
        "created": "2025-12-01T08:00:00Z",
        "updated": "2025-12-01T09:30:00Z",
        "project": {"name": "shop", "root": "/srv/shop"},
        "git": {
            "branch": "epic-3",
            "last_checkpoint_commit": COMMIT,
            "commit_message": "checkpoint: epic-3-story-2-task-4-test",
        },
        "lifecycle": {"phase": 3, "phase_name": "BUILD"},
        "epic": {
            "id": "epic-3",
            "file": "docs/epics/epic-3.md",
            "status": "in_progress",
            "stories_total": 5,
            "stories_complete": 1,
            "milestone_number": 12,
        },
        "current": {
            "story_id": "3-2",
            "story_file": "docs/epics/3-2.md",
            "task_index": 4,
            "task_total": 9,
            "step": "test",
            "retry_count": 2,
        },
        "parallel_plan": {"batch_id": "b1", "tasks": [], "approved_parallel": False},
        "completed": [{"story_id": "3-1", "status": "done", "checkpoint_commit": COMMIT}],
        "last_output": {"subagent": "TESTER", "result": "2 failed", "action_required": "fix"},
        "failure_history": [
            {
                "timestamp": "2025-12-01T09:00:00Z",
                "task_id": "4",
                "failure_type": "test_failure",
                "error_message": 'expected "3"',
                "retry_count": 1,
                "reverted_to": COMMIT,
                "recovered": True,
                "mood": "bad",
            }
        ],
        "metrics": {
            "tokens_used": 41000,
            "subagents_spawned": 3,
            "clears_performed": 2,
            "recoveries_performed": 1,
            "time_elapsed_minutes": 88.5,
        },
        "next_action": {"type": "spawn-fixer", "description": "repair the sum", "subagent": ""},
        "hitl": {
            "github_issue_id": 77,
            "github_url": "https://example.org/issues/77",
            "waiting_since": "2025-12-01T09:10:00Z",
            "type": "issue",
        },
        "github": {"project_id": "PVT_1", "status_options": {"todo": "a"}},
    }


def flat() -> dict[str, Any]:
    return {
        "version": "1.0",
        "epic_id": "epic-3",
        "story_id": "3-2",
        "phase": "Phase 1",
        "task_index": 4,
        "status": "hitl_pending",
        "branch": "feature/3-2",
        "commit_hash": COMMIT,
        "started_at": "2025-12-01T08:00:00Z",
        "updated_at": "2025-12-01T09:30:00Z",
        "repository": "git@example.org:shop.git",
        "notes": None,
    }


def ad_hoc() -> dict[str, Any]:
    return {
        "timestamp": "2025-12-01T09:30:00Z",
        "epic": "epic-3",
        "story": "3-2",
        "step": "implement",
        "state": "working",
        "context": "half of the form is done",
        "git_ref": COMMIT,
        "colour": "blue",
    }


def epic_state() -> dict[str, Any]:
    return {
        "phase": "03-implement",
        "epic_id": "epic-3",
        "epic_title": "The basket",
        "epic_branch": "epic-epic-3",
        "story_branch": "feature/3-2",
        "story_queue": ["3-1", "3-2", "3-3", "3-4", "3-5"],
        "current_story_index": 1,
        "current_story": "3-2",
        "completed_stories": ["3-1"],
        "failed_stories": [{"story_id": "3-4", "reason": "tests_failed"}],
        "skipped_stories": ["3-5"],
        "current_chunk_index": 2,
        "test_attempt": 2,
        "review_iteration": 0,
        "cascade_detection": {"failures_in_window": 1},
        "last_updated": "2025-12-01T09:30:00Z",
        "error": None,
    }


SHAPES = {
    "nested-1.0": nested,
    "flat-1.0": flat,
    "ad-hoc": ad_hoc,
    "epic-state": epic_state,
}
