"""What moto 5.2.1's Step Functions lacks where it executes state machines. Python runs this before it runs moto's server."""
import copy
import threading

from moto.core.responses import ActionResult
from moto.stepfunctions.models import StateMachine
from moto.stepfunctions.parser.models import StepFunctionsParserBackend as Backend
from moto.stepfunctions.responses import StepFunctionResponse

# To start an execution, moto copies the state machine with the executions that it has had, whose locks cannot be copied.
StateMachine.__deepcopy__ = lambda self, memo: copy.copy(self)

# Of two starts at once under one name, neither sees the other's execution.
one, start = threading.Lock(), Backend.start_execution


def start_execution(self, *args, **kwargs):
    with one:
        return start(self, *args, **kwargs)


Backend.start_execution = start_execution


# moto's parser judges definitions, but only where they are to be state machines.
def validate(self):
    try:
        Backend._validate_definition(self._get_param("definition"))
    except Exception as refused:
        diagnostic = {"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": str(refused)}
        return ActionResult({"result": "FAIL", "diagnostics": [diagnostic], "truncated": False})
    return ActionResult({"result": "OK", "diagnostics": [], "truncated": False})


StepFunctionResponse.validate_state_machine_definition = validate
