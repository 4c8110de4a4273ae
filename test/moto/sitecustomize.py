"""What moto 5.2.1's Step Functions lacks where it executes state machines. Python runs this before it runs moto's server."""
import copy
import functools
import threading

import jsonpath_ng
import jsonpath_ng.ext
from jsonpath_ng.ext.parser import ExtentedJsonPathParser
from jsonpath_ng.parser import JsonPathParser


# What takes most of moto's time, again and again: to make the parser of paths, and to parse one; to make the client that calls a function; to read folders.
def parses(parser):
    one = threading.Lock()

    @functools.lru_cache(None)
    def parse(path):
        with one:
            return parser.parse(path)

    return parse


# Before moto takes them.
jsonpath_ng.parse, jsonpath_ng.ext.parse = parses(JsonPathParser()), parses(ExtentedJsonPathParser())

import moto.backends
from moto.core.responses import ActionResult, EmptyResult
from moto.stepfunctions.models import StateMachine
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackEndpoint
from moto.stepfunctions.parser.asl.utils.encoding import to_json_str
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication as Communication
from moto.stepfunctions.parser.models import StepFunctionsParserBackend as Backend
from moto.stepfunctions.responses import StepFunctionResponse
from werkzeug.serving import WSGIRequestHandler

client, modules = functools.lru_cache(None)(lambda_eval_utils.boto_client_for), tuple(moto.backends.list_of_moto_modules())
lambda_eval_utils.boto_client_for = lambda region, service, state_credentials=None: client(region, service)
moto.backends.list_of_moto_modules = lambda: modules

# Requests are no news: the log is for what fails.
WSGIRequestHandler.log_request = lambda self, code="-", size="-": None

# To start an execution, moto copies the state machine with the executions that it has had, whose locks cannot be copied.
StateMachine.__deepcopy__ = lambda self, memo: copy.copy(self)

# Of two starts at once under one name, neither sees the other's execution.
one, start = threading.Lock(), Backend.start_execution


def start_execution(self, *args, **kwargs):
    with one:
        return start(self, *args, **kwargs)


Backend.start_execution = start_execution


# moto's parser judges definitions, but only where they are to be state machines. What it found good stays good: to parse takes long.
Backend._validate_definition = staticmethod(functools.lru_cache(None)(Backend._validate_definition))


def validate(self):
    try:
        Backend._validate_definition(self._get_param("definition"))
    except Exception as refused:
        diagnostic = {"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": str(refused)}
        return ActionResult({"result": "FAIL", "diagnostics": [diagnostic], "truncated": False})
    return ActionResult({"result": "OK", "diagnostics": [], "truncated": False})


StepFunctionResponse.validate_state_machine_definition = validate


# How an execution ended is told whole: its status came first, then its output or error; an output that is a string came without its quotes, null not at
# all, and one with a time in it was an error of the server.
end, describe, reflect = threading.Lock(), StepFunctionResponse.describe_execution, Communication._reflect_execution_status


def reflect_execution_status(self):
    with end:
        reflect(self)
        if self.execution.exec_status == "SUCCEEDED":
            self.execution.output = to_json_str(self.execution.output)


def describe_execution(self):
    with end:
        return describe(self)


Communication._reflect_execution_status = reflect_execution_status
StepFunctionResponse.describe_execution = describe_execution


# A task that fails by its token fails without its cause.
def send_task_failure(self):
    self.stepfunction_backend.send_task_failure(self._get_param("taskToken"), error=self._get_param("error"), cause=self._get_param("cause"))
    return EmptyResult()


StepFunctionResponse.send_task_failure = send_task_failure


# A task that was answered before moto began to wait for its heartbeat waits for that all the same.
setup = CallbackEndpoint.setup_heartbeat_endpoint


def setup_heartbeat_endpoint(self, heartbeat_seconds):
    endpoint = setup(self, heartbeat_seconds)
    if self.get_outcome() is not None:
        endpoint.notify()
    return endpoint


CallbackEndpoint.setup_heartbeat_endpoint = setup_heartbeat_endpoint
